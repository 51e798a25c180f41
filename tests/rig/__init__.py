"""A loopback stand-in for the providers' APIs, and throwaway homes for the real agent CLIs.

``Rig`` answers as the APIs do; ``World`` is a machine's worth of homes, fake keys and a PATH with
the pinned CLIs, in which bullswarm itself is run as a user would.
"""

from rig.api import Request, Rig
from rig.scenes import Scene
from rig.world import World, cli_folder, missing_clis

__all__ = ["Request", "Rig", "Scene", "World", "cli_folder", "missing_clis"]
