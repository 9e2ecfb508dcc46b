"""What an experiment refers to: queues, controllers, tables of connections, and programs.

It must not know the rest of the experiment, or how it is run. Code of users is read here first, and
is executed only in `queues`, when it lies in the experiment's folder or is allowed.

    code     finds the classes that an experiment names, and whether they may be executed
    imports  what they import, found by reading
    modules  loads them apart from other modules
    queues   executes them; the interface of queues
    controllers  the interface of congestion controllers
    programs  files of programs, and whether the command lines may be executed
    traces   tables of connections, which `connections` has as plain data; `vectors`: those of tmix
"""
