"""The methods of the client, one file for each thing; `AsyncAPIClient` has all of them."""
