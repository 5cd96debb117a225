"""Names and descriptions of Amazon SageMaker Debugger and its library smdebug."""
