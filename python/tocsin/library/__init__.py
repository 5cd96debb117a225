"""The binding of ``libtocsin_client``: structs, codes and words of its interface, and how it is found."""
