"""ACW's composition root: the one package that knows all the others."""
