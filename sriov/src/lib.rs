//! PCI Express functions as data: configuration space, capabilities, BARs, MSI, FLR and the SR-IOV rules.
#![forbid(unsafe_code)]
