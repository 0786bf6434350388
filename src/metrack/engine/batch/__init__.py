"""Inner loops of the methods that see all data at once: ITML, MMC and LMNN."""
