"""The methods of frames (Objects, Views, queries): choosing, joining, reshaping, summaries, expectations."""
