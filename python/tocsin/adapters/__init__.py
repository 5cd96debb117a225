"""One module per framework; each talks to a :class:`tocsin.sink.Sink` and to nothing else of ours."""
