"""The two .proto files, and the messages that tools/build_protos.py generates from them."""
