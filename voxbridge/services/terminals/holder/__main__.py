"""Start the holder: `python -m voxbridge.services.terminals.holder FOLDER`. Where another one holds the folder it ends at once."""

import sys

from voxbridge.services.terminals.holder.holder import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
