# searcher/
