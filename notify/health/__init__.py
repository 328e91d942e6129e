"""How an endpoint fares, and what that lets through: places in flight, the breaker, lanes, and switching by hand."""
