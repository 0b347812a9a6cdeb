"""MindSpore 2.10's collectives: put ``shim.frontends.`` in front of ``mindspore.`` in an import."""
