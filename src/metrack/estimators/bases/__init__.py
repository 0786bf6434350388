"""What estimators inherit: read-outs of metrics, learning pair after pair, weights of experts."""
