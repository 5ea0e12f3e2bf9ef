"""SQL that turns texts into values: exactly, or not at all; and guesses the types of columns of texts."""
