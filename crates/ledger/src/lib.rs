//! Documents, versions, inbox and audit trail: port, adapters, contract.
