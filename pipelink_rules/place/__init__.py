"""Place: stages, addresses, ids, warps and registers of one SM, solved together by Z3."""
