"""The studies of differential attention, a file each: what subtracting two softmax maps buys, and at which price."""
