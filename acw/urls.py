"""Every address of the web server."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from acw import views
from acw.signin import SignIn, SignOut

# Fills the site, whose addresses are taken below; see ConsoleConfig.
admin.autodiscover()

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", SignOut.as_view(), name="logout"),
    path("", include("notify.urls")),
    path("", include("workspaces.urls")),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]

handler403 = "acw.refusals.forbidden"
handler404 = "acw.refusals.not_found"
