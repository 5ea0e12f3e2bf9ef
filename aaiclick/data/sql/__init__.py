"""SQL as text: what is quoted, what is closed, what raw pieces of it name."""
