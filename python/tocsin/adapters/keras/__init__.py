"""Parts of Keras's callback: gradients, losses and the ledger inside of compiled steps."""
