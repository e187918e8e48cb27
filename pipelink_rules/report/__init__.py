"""Reports about a link: manifest for the launcher, link map, comparisons, tables."""
