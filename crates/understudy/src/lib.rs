//! A stand-in ONLYOFFICE Document Server for demo, tests and load.
