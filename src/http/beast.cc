// Beast's own code, compiled once for everybody (BOOST_BEAST_SEPARATE_COMPILATION).
#include <boost/beast/src.hpp>
