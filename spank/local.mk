# spank/
