"""The frontends' signatures, compared with those on record, and these with the installed frameworks'."""
