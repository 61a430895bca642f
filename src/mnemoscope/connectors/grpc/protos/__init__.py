"""The two .proto files, and the messages that tools/build_protos.py makes of them."""
