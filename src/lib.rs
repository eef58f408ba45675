//! The edges of the virtual card: vfio-user server, configuration, command line, metrics.
