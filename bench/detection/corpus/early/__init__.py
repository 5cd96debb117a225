"""The first three sets, and jobs and faults of that time: the table of jobs and of faults that later sets enter themselves into stands here."""
