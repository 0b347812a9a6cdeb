"""The methods of torch's ProcessGroup that communicate."""
