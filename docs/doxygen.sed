# Makes Doxygen's comments of the headers' (docs/Doxyfile).
# The first line is the license, what follows says what the file is.
1s,.*,/// @file,
# headings between declarations
s,^ *// ?-{3}.*,,
# a comment behind a declaration that goes on in the next line
s,^( {8}|.*      )// ,\1///< ,
# a comment before a declaration
s,^( *)// ?([^/]|$),\1/// \2,
# a comment behind a declaration
/^ *(\/\/|\})/!s,([;{},]) *// ,\1 ///< ,
