"""What a served metric can learn from - pairs, triplets, points with classes - a file each."""
