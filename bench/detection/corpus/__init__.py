"""Small real trainings, healthy and with one known fault each, recorded through the product's own hook."""
