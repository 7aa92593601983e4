"""Import of history: files of samples in long form become packed rows of days, as rounds write them."""
