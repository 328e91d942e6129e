"""How long it takes until tasks whose deadlines all fall in one minute have been driven through; see the README beside."""
