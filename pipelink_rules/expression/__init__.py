"""The expression language of contracts and manifests."""
