"""What a process tells about itself: its log lines, its traces, and what must be in neither."""
