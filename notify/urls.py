"""The pages of the inbox."""

from __future__ import annotations

from django.urls import path

from notify import views

app_name = "notify"
urlpatterns = [
    path("inbox/", views.inbox, name="inbox"),
    path("inbox/read/", views.mark_all_read, name="mark_all_read"),
    path("inbox/<int:pk>/read/", views.mark_read, name="mark_read"),
]
