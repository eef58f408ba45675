//! A reference VMM on KVM that has the card as a library.
