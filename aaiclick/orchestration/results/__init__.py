"""Results of runs: encoding return values, decoding stored results, opening the Objects they refer to."""
