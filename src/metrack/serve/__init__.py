"""``metrack serve``: feedback in over HTTP, the metric of the moment out. Nothing in it learns."""
