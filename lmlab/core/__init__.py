"""The ground floor: errors, configuration, names, randomness, device. Imports nothing from lmlab above it."""
