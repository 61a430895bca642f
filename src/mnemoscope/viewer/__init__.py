"""The viewer: a local web app over the runs below one folder. It only reads."""
