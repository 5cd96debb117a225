"""The loops, tables of jobs and tables of faults that recipes enter themselves into."""
