# doc/
