"""``python -m bullswarm.providers.echo``: the worker itself, its prompt on stdin."""

from bullswarm.providers.echo.agent import main

raise SystemExit(main())
