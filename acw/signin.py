"""Signing in and out for every user; the admin's own page lets nobody in but staff."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    """The admin's login page, for users who only have an inbox too."""

    template_name = "admin/login.html"
    next_page = "notify:inbox"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return {**admin.site.each_context(self.request), **context, "title": "Log in"}


class SignOut(LogoutView):
    """Ends the session; POST only."""

    next_page = "login"
