# contrib/
