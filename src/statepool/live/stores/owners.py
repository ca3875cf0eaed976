"""Whose files segments are: the owner's of the SQLite file beside them, for whoever serves that must read them, too.

SQLite itself gives its -wal to the owner of the file when root writes; folders and segments follow it in that.
"""

import os
import sys
from pathlib import Path

if sys.platform != "win32":  # where files have no such owners
    import pwd

HOW = "run this as that user, or name another --place"


def make_folder(folder: Path, file: str) -> None:
    """The folder for segments of a SQLite file; refuses one in which its owner could not read them."""
    if sys.platform == "win32":
        return
    owner, us = os.stat(file), os.geteuid()
    if owner.st_uid == us:
        return  # it is made with the first segment
    if us != 0:
        raise ValueError(
            f"place: {file} belongs to {_name(owner.st_uid)}, who could not read segments of {_name(us)}: {HOW}"
        )
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    closed = [each for each in folder.parents if each not in missing and not _may_pass(owner, each)]
    if closed or (not missing and folder.stat().st_uid != owner.st_uid):
        raise ValueError(
            f"place: {folder} cannot be read by {_name(owner.st_uid)}, whom {file} belongs to "
            f"({closed[-1] if closed else folder} belongs to another): {HOW}"
        )
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700)
            _give(each, owner)
    except OSError as error:
        raise ValueError(f"place: {folder} cannot be made ({error.strerror}): {HOW}") from None


def _give(folder: Path, owner: os.stat_result) -> None:
    """To its owner, and nothing but a folder: who may write beside it could have put a link to another file there."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchown(number, owner.st_uid, owner.st_gid)
    finally:
        os.close(number)


def follow_owner(descriptor: int, folder: Path) -> None:
    """A new file belongs to the owner of its folder, where this process may say so."""
    if sys.platform != "win32" and os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _may_pass(owner: os.stat_result, folder: Path) -> bool:
    found = folder.stat()
    if found.st_uid == owner.st_uid:
        return bool(found.st_mode & 0o100)
    return bool(found.st_mode & (0o010 if found.st_gid in _groups(owner) else 0o001))


def _groups(owner: os.stat_result) -> set[int]:
    try:
        return {owner.st_gid, *os.getgrouplist(pwd.getpwuid(owner.st_uid).pw_name, owner.st_gid)}
    except KeyError:  # a number without a name, as in containers
        return {owner.st_gid}


def _name(user: int) -> str:
    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user {user}"
