//! Kafka partition directories as Arrow record batches.
