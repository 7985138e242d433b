"""What draws and writes numbers, for instruments, comparisons and studies alike; it knows nothing of any of them."""
