"""SQL as text: quoting, closed functions, time zones, and the columns that raw SQL refers to."""
