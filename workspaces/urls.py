"""The pages of this app outside the admin."""

from __future__ import annotations

from django.urls import path

from workspaces.storing import views

app_name = "workspaces"
urlpatterns = [path("attachments/<int:pk>/", views.attachment, name="attachment")]
