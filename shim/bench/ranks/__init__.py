"""The rank processes of a contender: how they are started, and the turns that they take."""
